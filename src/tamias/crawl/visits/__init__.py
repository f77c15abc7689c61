"""The path of one URL through a worker: asked politely, seen, walked through, judged."""
