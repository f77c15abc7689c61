"""The crawlers that are compared, behind one interface, with the small programs that some of them need."""
