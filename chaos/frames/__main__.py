"""`python -m chaos.frames`: the frame proxy alone (`chaos.frames.proxy.command`)."""

from chaos.frames.proxy.command import main
from verification.command_line import end_with

if __name__ == "__main__":
    end_with(main, program="python -m chaos.frames", kept="all listeners are closed")
