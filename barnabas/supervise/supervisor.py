"""The supervisor: starts the nodes of a cluster, reports nodes that die, answers the commands, and ends all in order.

One thread waits for everything: signals, ends of nodes, ready files while a node starts, and the control socket. No
command delays another: an answer waits for a condition (a node's end, its start), which is checked in each turn. A
stop ends the brokers first, by controlled shutdown, and then the controllers. `cluster.json` is written before
the first node is started, so that no node belongs to a cluster whose id could be lost; while it cannot be written the
nodes go on.
"""

from __future__ import annotations

import gc
import os
import selectors
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from barnabas.storage.files import Files, UnsyncedFiles
from barnabas.supervise import control, state
from barnabas.supervise.lock import ClusterLock, take_directory
from barnabas.supervise.members import Members, import_the_broker
from barnabas.supervise.node import how_it_ended, last_line
from barnabas.supervise.options import ClusterOptions
from barnabas.supervise.plan import PlanError
from barnabas.supervise.requests import Requests
from barnabas.supervise.state import ClusterState, NodeState
from barnabas.terminal.notes import note
from barnabas.terminal.plural import plural

EXIT_OK, EXIT_FAILED, EXIT_MISTAKE = 0, 1, 2
STARTING_POLL_S = 0.004
"""How often ready files are looked at while a node starts, seconds."""
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
STOP_S = 30.0
"""How long a node may take for a stop before it is killed, seconds."""
RESTART_S = 1.0
"""How long a node is left alone before it is started again, seconds."""
SAVE_AGAIN_S = 5.0
"""The pause before a failed write of the state is tried again, seconds."""


def run(options: ClusterOptions) -> int:
    """Run a cluster until SIGTERM or SIGINT; returns the exit code."""
    directory = options.data_dir
    try:
        directory = directory or tempfile.mkdtemp(prefix="barnabas-")
        lock = take_directory(directory, STOP_S)
        supervisor = Supervisor(Members(options, directory), options, lock)
    except PlanError as error:
        note(f"barnabas serve: {error}")
        return EXIT_MISTAKE
    except OSError as error:
        note(f"barnabas serve: Cannot use the data directory {directory}: {error.strerror}")
        return EXIT_MISTAKE
    else:
        return supervisor.run()
    finally:
        if options.data_dir is None and directory is not None:
            shutil.rmtree(directory, ignore_errors=True)


class _Stopped(Exception):  # noqa: N818 - a condition
    """A signal to stop has come before any node was started."""


class Supervisor:
    """Runs the nodes of one cluster."""

    def __init__(self, members: Members, options: ClusterOptions, lock: ClusterLock) -> None:
        self._lock = lock
        self.members = members
        self.options = options
        self.directory = str(members.directory)
        self.is_stopping = False
        self._is_asked_to_stop = False
        self._is_preparing = True
        self._is_serving = False
        self._exit_code = EXIT_OK
        self._selector = selectors.DefaultSelector()
        self._stop_deadlines: dict[int, float] = {}
        self._restarts: dict[int, float] = {}
        self._commands: dict[int, str] = {}  # the command that requested the start or the end of a node
        self._files = UnsyncedFiles() if options.data_dir is None else Files()
        self._unsaved_since: float | None = None
        self._listener, members.state.control = control.open_listener(self.directory)
        self._wake_read, self._wake_write = os.pipe()
        for descriptor in (self._wake_read, self._wake_write):
            os.set_blocking(descriptor, False)
        self._requests = Requests(self, self._selector)

    @property
    def state(self) -> ClusterState:
        """The state to write to `cluster.json`."""
        return self.members.state

    def run(self) -> int:
        """Start all nodes, serve, and stop; returns the exit code."""
        self._take_signals()
        self._selector.register(self._wake_read, selectors.EVENT_READ, self._woken)
        self._selector.register(self._listener, selectors.EVENT_READ, lambda: self._requests.accept(self._listener))
        try:
            if self.options.ready_file is not None:
                Path(self.options.ready_file).unlink(missing_ok=True)
            self.members.prepare()
            import_the_broker()
            gc.freeze()  # the nodes' garbage collections do not write to shared objects
            for name in self.members.left_out:
                note(f"barnabas serve: {name} of {self.directory} is not started, --brokers is {self.options.brokers}")
            self._write_first()
            self._is_preparing = False
            for node in self.state.nodes:
                if not self._is_asked_to_stop:
                    self.start(node)
            self._loop()
        except _Stopped:
            return EXIT_OK
        except PlanError as error:
            note(f"barnabas serve: {error}")
            return EXIT_MISTAKE
        finally:
            self.close()
        return self._exit_code

    def close(self) -> None:
        """End the companion, close the control socket and release the directory's lock."""
        if self.options.companion is not None:
            self.options.companion.end()
        self._selector.close()
        self._listener.close()
        control.remove(self.state.control, self.directory)
        self._lock.release()

    def _write_first(self) -> None:
        try:
            state.write(self.directory, self.state, self._files)
        except OSError as error:
            raise PlanError(f"Cannot use the data directory {self.directory}: {error.strerror}") from error

    def _take_signals(self) -> None:
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        for number in STOP_SIGNALS:
            signal.signal(number, lambda *_: self._ask_to_stop())
        signal.signal(signal.SIGCHLD, lambda *_: None)  # wakes the selector

    def _ask_to_stop(self) -> None:
        """A signal: the loop ends the nodes, since a start or a write of the state may be under way here."""
        self._is_asked_to_stop = True
        if self._is_preparing:
            self._is_preparing = False
            raise _Stopped

    def _loop(self) -> None:
        while True:
            if self._is_asked_to_stop:
                self.stop_all()
            self._reap()
            self._look_at_starts()
            self._enforce_deadlines()
            self._save_again()
            self._requests.look()
            if self.is_stopping and not any(node.pid for node in self.state.nodes):
                return
            for key, _ in self._selector.select(self._pause_s()):
                key.data()

    def _pause_s(self) -> float | None:
        if any(node.state == "starting" for node in self.state.nodes):
            return STARTING_POLL_S
        is_waiting = self._stop_deadlines or self._restarts or self._unsaved_since is not None
        return 0.1 if is_waiting else None

    def _woken(self) -> None:
        try:
            os.read(self._wake_read, 4096)
        except BlockingIOError:
            pass

    # nodes

    def start(self, node: NodeState, command: str = "") -> None:
        """Start a node's process; `command` is the subcommand of `barnabas cluster` that asked for it."""
        mine = [self._wake_read, self._wake_write, self._listener.fileno(), *self._requests.descriptors()]
        mine += [*self._lock.descriptors(), self._selector.fileno()]
        mine += self.options.companion.descriptors() if self.options.companion is not None else []
        self._commands[node.node_id] = command
        self._restarts.pop(node.node_id, None)
        node.starts += 1
        node.state, node.detail = "starting", ""
        node.pid = self.members.start(node, mine)
        self.save()

    def signal_node(self, node: NodeState, number: signal.Signals, command: str = "") -> None:
        """Send a signal to a node's process, SIGKILL to all that it has started; `command` as for `start`."""
        if node.pid is None:
            return
        self._commands[node.node_id] = command
        if number is signal.SIGTERM:
            node.state = "stopping"
            self._stop_deadlines[node.node_id] = time.monotonic() + STOP_S
            self.save()
            os.kill(node.pid, signal.SIGTERM)
            os.kill(node.pid, signal.SIGCONT)
        else:
            os.killpg(node.pid, number)

    def save(self) -> None:
        """Write `cluster.json`. If that fails the nodes go on: it is reported, and the write is tried again."""
        try:
            state.write(self.directory, self.state, self._files)
        except OSError as error:
            if self._unsaved_since is None:
                path = Path(self.directory) / state.FILE
                note(f"barnabas serve: Cannot write {path}: {error.strerror}; it is written when that is possible")
            self._unsaved_since = time.monotonic()
        else:
            self._unsaved_since = None

    def _save_again(self) -> None:
        if self._unsaved_since is not None and time.monotonic() - self._unsaved_since >= SAVE_AGAIN_S:
            self.save()

    def _take_command(self, node: NodeState) -> str:
        """`, as 'barnabas cluster stop' has asked`, once, if a command has."""
        command = self._commands.pop(node.node_id, "")
        return f", as 'barnabas cluster {command}' has asked" if command else ""

    def _reap(self) -> None:
        for node in self.state.nodes:
            if node.pid is None:
                continue
            pid, status = os.waitpid(node.pid, os.WNOHANG)
            if pid:
                self._ended(node, status)

    def _ended(self, node: NodeState, status: int) -> None:
        how, was, pid = how_it_ended(status), node.state, node.pid
        node.pid = None
        self._stop_deadlines.pop(node.node_id, None)
        is_clean = was == "stopping" and status in (0, signal.SIGTERM)  # SIGTERM: it did not serve yet
        node.state, node.detail = ("stopped" if is_clean else "died"), how
        if node.role == "broker" and self.is_stopping:
            self._stop_controllers_last()
        self.save()
        if self.is_stopping:
            if not is_clean and was != "killing":
                self._exit_code = self._exit_code or EXIT_FAILED
                note(f"barnabas serve: {node.name} (pid {pid}) ended with {how}: {last_line(node.log)}")
            return
        by_command = self._take_command(node)
        if was == "stopping":
            note(f"barnabas serve: {node.name} (pid {pid}) ended: {how}{by_command}")
            return
        if was == "starting" and not self._is_serving:
            self._failed_start(node, status)
        else:
            self._report_death(node, pid, how)

    def _failed_start(self, node: NodeState, status: int) -> None:
        code = os.waitstatus_to_exitcode(status)
        text = last_line(node.log)
        if code == EXIT_MISTAKE and text.startswith("barnabas serve: "):
            note(f"{text} ({node.name})")
        else:
            note(f"barnabas serve: {node.name} could not start ({node.detail}); its output is {node.log}: {text}")
        self._exit_code = EXIT_MISTAKE if code == EXIT_MISTAKE else EXIT_FAILED
        self.stop_all()

    def _report_death(self, node: NodeState, pid: int | None, how: str) -> None:
        if self.options.restarts:
            self._restarts[node.node_id] = time.monotonic() + RESTART_S
            then = "it is started again"
        else:
            then = f"'barnabas cluster start {node.node_id} --data-dir {self.directory}' starts it again"
        note(f"barnabas serve: {node.name} (pid {pid}) ended: {how}; {then}. Its output is {node.log}")

    def _look_at_starts(self) -> None:
        for node in self.state.nodes:
            if node.state == "starting" and self._is_ready(node):
                node.state = "running"
                self.save()
                if by_command := self._take_command(node):
                    note(f"barnabas serve: {node.name} (pid {node.pid}) runs{by_command}")
        if self._is_serving or self.is_stopping:
            return
        if all(node.state == "running" for node in self.state.brokers):
            self._is_serving = True
            self._announce()

    def _is_ready(self, node: NodeState) -> bool:
        if node.role == "controller":
            # Brokers that serve have found the controllers; a controller has no clients to wait for it.
            return node.pid is not None and any(broker.state == "running" for broker in self.state.brokers)
        return Path(self.members.ready_file(node)).exists()

    def _announce(self) -> None:
        from barnabas.broker.start.ready import CLIENT_CONFIGURATION

        dial = ",".join(node.address for node in self.state.brokers)
        bound = ",".join(self.members.listener(node) for node in self.state.brokers)
        if self.options.ready_file is not None:
            temporary = Path(f"{self.options.ready_file}.{os.getpid()}")
            temporary.write_text(f"{dial}\n", encoding="utf-8")
            temporary.replace(self.options.ready_file)
        now = time.strftime("%Y-%m-%d %H:%M:%S") + f",{time.time_ns() // 1_000_000 % 1000:03d}"
        count = len(self.state.brokers)
        clients = f"A cluster of {count} {plural('broker', count)} in {self.directory}"
        who = f"[KafkaServer cluster={self.state.cluster_id}]"
        sys.stdout.write(
            f"[{now}] INFO {who} started on {bound} (kafka.server.KafkaServer)\n"
            + self._start_companion(dial)
            + CLIENT_CONFIGURATION.format(clients=clients, dial=dial)
        )
        sys.stdout.flush()

    def _start_companion(self, bootstrap: str) -> str:
        """Start the process that serves beside the cluster; what it adds to the ready lines."""
        companion = self.options.companion
        if companion is None:
            return ""

        def ended() -> None:
            self._selector.unregister(companion)
            note(f"barnabas serve: {companion.sentence_of_end()}")

        companion.start(bootstrap, self.directory)
        self._selector.register(companion, selectors.EVENT_READ, ended)
        return companion.also_ready

    def _enforce_deadlines(self) -> None:
        now = time.monotonic()
        for node_id in [node_id for node_id, at in self._stop_deadlines.items() if at <= now]:
            node = self.state.node(node_id)
            note(f"barnabas serve: {node.name} has not stopped in {STOP_S:.0f} s and is killed")
            del self._stop_deadlines[node_id]
            self.signal_node(node, signal.SIGKILL)
        for node_id in [node_id for node_id, at in self._restarts.items() if at <= now]:
            del self._restarts[node_id]
            if not self.is_stopping:
                self.start(self.state.node(node_id))

    # the end

    def stop_all(self) -> None:
        """End the brokers, then the controllers."""
        if self.is_stopping:
            return
        self.is_stopping = True
        for node in self.state.brokers:
            self.signal_node(node, signal.SIGTERM)
        self._stop_controllers_last()

    def _stop_controllers_last(self) -> None:
        if any(node.pid is not None for node in self.state.brokers):
            return
        for node in self.state.nodes:
            if node.role == "controller" and node.state != "stopping":
                self.signal_node(node, signal.SIGTERM)
