"""A Tamias process in small: opens a database and runs the SQL it reads, one statement a line."""

import json
import sys
from contextlib import closing
from pathlib import Path


def main():
    from tamias.database.connect import Database
    from tamias.model.errors import TamiasError

    try:
        database = Database(Path(sys.argv[1]), **json.loads(sys.argv[2]))
    except TamiasError as error:
        say({"error": type(error).__name__, "message": str(error), "exit": error.exit_code})
        return
    with closing(database), closing(database.session()) as session:
        say("ready")
        for line in sys.stdin:
            say(session.transact(lambda cursor, sql=line: run(cursor, sql)))


def run(cursor, sql):
    cursor.execute(sql)
    return cursor.fetchall() if cursor.description else []


def say(value):
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
