"""Starts the app: one Streamlit server on this machine, with the settings of `.streamlit/config.toml`.

Streamlit takes settings from the folder it is started in, the home directory, the environment and flags,
and flags win. Every value of the project's own file is therefore passed as a flag. This module imports
neither Streamlit nor the library, so the command line can ask it before it pays for either.
"""

from __future__ import annotations

import ipaddress
import json
import os
import socket
import sys
import threading
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
CONFIG = FOLDER / ".streamlit" / "config.toml"
MAIN = FOLDER / "main.py"

PATHS_VARIABLE = "GRAFT_APP_PATHS"  # a JSON list of absolute paths, from `graft app` to the pages
BROWSER_VARIABLE = "GRAFT_OPEN_BROWSER"  # 0: never open a browser
NEEDED = ("streamlit", "plotly", "pyvis")
FIRST_PORT = 8501
PORTS_TRIED = 100
START_SECONDS = 60.0


def config_values(path: Path = CONFIG) -> dict[str, object]:
    """Streamlit's settings in a TOML file as one flat mapping.

    Args:
        path: a Streamlit `config.toml`.

    Returns:
        `{"server.address": "127.0.0.1", "theme.light.textColor": ...}`, in the file's order.
    """

    def walk(table: Mapping[str, object], prefix: str) -> Iterator[tuple[str, object]]:
        for key, value in table.items():
            if isinstance(value, dict):
                yield from walk(value, f"{prefix}{key}.")
            else:
                yield f"{prefix}{key}", value

    with path.open("rb") as file:
        return dict(walk(tomllib.load(file), ""))


def flags(values: Mapping[str, object]) -> list[str]:
    """Settings as Streamlit's command-line flags.

    A list is repeated, one flag for each element; under `theme` Streamlit expects it as JSON in one flag.
    """
    result = []
    for key, value in values.items():
        if isinstance(value, list) and not key.startswith("theme."):
            result += [f"--{key}={_word(element)}" for element in value]
        else:
            result.append(f"--{key}={_word(value)}")
    return result


def _word(value: object) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value)


def given_paths() -> list[str]:
    """The files and folders the app was started with, absolute; the sample data if there were none."""
    handed_over = json.loads(os.environ.get(PATHS_VARIABLE, "[]"))
    if handed_over:
        return [str(path) for path in handed_over]
    import graft_sample_data

    return [str(path) for path in graft_sample_data.paths()]


def run(
    paths: Sequence[str | os.PathLike[str]] = (),
    port: int | None = None,
    host: str | None = None,
    open_browser: bool | None = None,
) -> int:
    """Serves the app until it is stopped.

    Args:
        paths: files and folders to show; none: the sample data.
        port: TCP port; None or 0: the first free one from 8501 on.
        host: address to listen on. None: 127.0.0.1, whatever Streamlit's own files or variables say. Any
            other address counts as asked for: it is used, with a warning on stderr.
        open_browser: True or False decides; None opens one only where a person sits: a display, no CI or ssh.

    Returns:
        The exit status: 0 stopped as usual, 1 the app could not be started (one sentence on stderr says why).
    """
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        return _refuse(f'The app needs {" and ".join(missing)}: pip install "graft-lab[app]"')
    absent = [str(path) for path in paths if not Path(path).exists()]
    if absent:
        return _refuse(f"{absent[0]}: no such file or folder.")

    values = config_values()
    address = host or str(values["server.address"])
    if not is_loopback(address):
        print(
            f"Warning: {address} is open to other machines, and the app has no password: "
            "whoever reaches it can read the rollouts it shows.",
            file=sys.stderr,
        )
        values["server.allowedHosts"] = ["*"]  # the name others will call this machine by is not known here
    elif host:
        values["server.allowedHosts"] = ["127.0.0.1", "localhost", "::1", host.strip("[]")]
    number = port or free_port(address)
    if number is None:
        return _refuse(f"No free port from {FIRST_PORT} to {FIRST_PORT + PORTS_TRIED - 1} on {address}.")
    trouble = port_trouble(address, number)
    if trouble:
        return _refuse(f"Cannot listen on {address} port {number}: {trouble}.")
    values |= {"server.address": address, "server.port": number}

    os.environ[PATHS_VARIABLE] = json.dumps([os.path.abspath(path) for path in paths])
    _announce(address, number, can_open_browser() if open_browser is None else open_browser)
    return _serve([*flags(values), "--", str(MAIN)])


def is_loopback(address: str) -> bool:
    """True if only programs on this machine can reach the address."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return False


def port_trouble(address: str, port: int) -> str:
    """Why the port cannot be listened on, in the system's words; empty if it can."""
    if not 0 < port < 65536:
        return "ports go from 1 to 65535"
    try:
        family, kind, protocol, _, target = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            if os.name == "posix":  # as the server does: a port that was just given back is free
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(target)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def free_port(address: str) -> int | None:
    """The first free port from 8501 on; None if a hundred are taken or the address is not this machine's."""
    ports = range(FIRST_PORT, FIRST_PORT + PORTS_TRIED)
    return next((port for port in ports if not port_trouble(address, port)), None)


def can_open_browser() -> bool:
    """True where a person can be expected to see a browser window open."""
    if os.environ.get(BROWSER_VARIABLE) == "0" or os.environ.get("CI") or os.environ.get("SSH_CONNECTION"):
        return False
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def url_of(address: str, port: int) -> str:
    """The address to type into a browser on this machine."""
    bare = address.strip("[]")
    if bare in ("0.0.0.0", "::"):  # noqa: S104  every address of this machine: name one
        bare = "127.0.0.1"
    return f"http://[{bare}]:{port}" if ":" in bare else f"http://{bare}:{port}"


def _announce(address: str, port: int, browser: bool) -> None:
    url = url_of(address, port)
    print(f"GRAFT Lab: {url}   (Ctrl+C stops it)", flush=True)
    if browser:
        threading.Thread(target=_open_when_ready, args=(address, port), daemon=True).start()
    elif os.environ.get("SSH_CONNECTION"):
        tunnel = f"ssh -L {port}:127.0.0.1:{port} THIS-MACHINE"
        print(f"From your own computer: {tunnel}, then open the address.", flush=True)


def _open_when_ready(address: str, port: int) -> None:
    import time
    import urllib.error
    import urllib.request
    import webbrowser

    url, deadline = url_of(address, port), time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{url}/_stcore/health", timeout=2):
                webbrowser.open(url)
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)


def _serve(arguments: list[str]) -> int:
    from streamlit.web import cli

    try:
        cli.main(["run", *arguments], prog_name="streamlit", standalone_mode=False)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except KeyboardInterrupt:
        return 0
    return 0


def _refuse(sentence: str) -> int:
    print(f"graft: {sentence}", file=sys.stderr)
    return 1
