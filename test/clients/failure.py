"""What a client tells its user when the server refuses."""


def failure(call):
    """Name, text and fields of the exception that the call raises; it must raise one."""
    try:
        answer = call()
    except Exception as error:
        return {
            "kind": type(error).__name__,
            "message": str(error),
            "status": getattr(error, "status_code", None),
            "code": getattr(error, "code", None),
            "param": getattr(error, "param", None),
        }
    raise AssertionError(f"answered where an exception was due: {str(answer)[:200]}")
