"""A number with its noun, which is plural unless the number is one."""


def counted(number: float, noun: str, plural: str | None = None) -> str:
    """`1 call`, `2 calls`, `1,200 calls`.

    Args:
        plural: where it is not the noun with an s.
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
