"""What a message must name: its sentence may change, the option, file, limit or place in it may not."""


def unnamed(message, *names):
    """The names that a message lacks."""
    return [name for name in names if str(name) not in str(message)]
