-- Functions that only data from before the first schema was written anew has; nothing calls them.
DROP FUNCTION IF EXISTS put_few, put_one;
