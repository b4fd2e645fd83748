"""Model files on disk: a file is the old one or the new one, whatever happens; other places are refused in words."""

import io
import os
import re
import resource
import signal
import stat
import subprocess
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
import spinney
from oracle.saved import assert_same_model, small_classifier
from processes import Program

PACKAGE_FOLDER = str(Path(spinney.__file__).parent.parent)


@pytest.fixture
def model():
    return small_classifier()


@pytest.mark.parametrize("as_path", [str, Path])
def test_paths_of_both_kinds(model, tmp_path, as_path):
    path = as_path(tmp_path / "m.spinney")
    assert model.save(path) is None
    assert_same_model(model, spinney.load(path), [[1.0, 2.0]])
    assert os.listdir(tmp_path) == ["m.spinney"]


def test_binary_files_and_pipes(model, tmp_path):
    with open(tmp_path / "m", "wb") as file:
        model.save(file)
    with open(tmp_path / "m", "rb", buffering=0) as file:
        assert_same_model(model, spinney.load(file), [[1.0, 2.0]])
    with open(tmp_path / "m") as file, pytest.raises((TypeError, UnicodeDecodeError)):
        spinney.load(file)
    with open(tmp_path / "t", "w") as file, pytest.raises(TypeError, match="binary mode"):
        model.save(file)
    with pytest.raises(TypeError, match="text mode"):
        spinney.load(io.StringIO("abc"))
    with pytest.raises(TypeError, match="not int"):
        model.save(3)
    with pytest.raises(TypeError, match="not NoneType"):
        spinney.load(None)


def test_the_current_folder_is_a_folder(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model.save("m.spinney")
    assert_same_model(model, spinney.load("m.spinney"), [[1.0, 2.0]])


def test_permissions_follow_the_umask_and_stay(model, tmp_path):
    path = tmp_path / "m"
    before = os.umask(0o027)
    try:
        model.save(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o604)
    model.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


def test_a_link_stays_a_link_and_a_device_a_device(model, tmp_path):
    model.save(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "real").write_bytes(b"old")
    model.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert_same_model(model, spinney.load(tmp_path / "real"), [[1.0, 2.0]])
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", str(tmp_path / "pipe")], stdout=subprocess.PIPE)
    model.save(tmp_path / "pipe")
    data, _ = reader.communicate(timeout=60)
    assert_same_model(model, spinney.load(io.BytesIO(data)), [[1.0, 2.0]])
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_a_failing_disk_leaves_the_old_file(model, tmp_path, monkeypatch):
    path = tmp_path / "m"
    path.write_bytes(b"old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    for step in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, step, fail)
            with pytest.raises(OSError, match=r"No space left on device: the model's [\d,]+ bytes were not.*'.*/m'$"):
                model.save(path)
        assert path.read_bytes() == b"old"
        assert os.listdir(tmp_path) == ["m"]


def test_a_full_disk_leaves_the_old_file(model, tmp_path):
    path = tmp_path / "m"
    path.write_bytes(b"old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)  # Python ignores the signal that comes with it
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(
            OSError, match=r"File too large: .* bytes were not saved, and the previous file is unchanged"
        ):
            model.save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["m"]


class Slow(io.RawIOBase):
    """A file that takes a little at a time, and then perhaps no more."""

    def __init__(self, at_once, most=10**9):
        self.at_once, self.most, self.content = at_once, most, b""

    def write(self, data):
        n = min(self.at_once, len(data), self.most - len(self.content))
        self.content += bytes(data[:n])
        return n

    def writable(self):
        return True


def test_a_file_that_takes_a_part_at_a_time_gets_all(model):
    file, whole = Slow(1000), io.BytesIO()
    model.save(file)
    model.save(whole)
    assert file.content == whole.getvalue()
    with pytest.raises(OSError, match=r"The file accepts no more data: the last [\d,]+ bytes of the model were not"):
        model.save(Slow(100, most=250))


def test_a_pipe_that_is_full_is_an_error(model):
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    X = np.arange(40_000.0)[:, None]
    large = spinney.DecisionTreeRegressor().fit(X, X[:, 0])
    with open(writer, "wb", buffering=0) as file, pytest.raises(OSError, match="accepts no more data"):
        large.save(file)
    os.close(reader)


def test_writers_that_return_nothing_are_believed(model):
    class Writer:
        def write(self, data):
            self.content = data

    file = Writer()
    model.save(file)
    assert_same_model(model, spinney.load(io.BytesIO(file.content)), [[1.0, 2.0]])


def test_what_a_killed_save_left_is_swept_by_the_next(model, tmp_path):
    code = f"""
        import os, signal, spinney
        model = spinney.DecisionTreeRegressor().fit([[1.0], [2.0]], [1.0, 2.0])
        os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        model.save({str(tmp_path / "m")!r})
    """
    assert Program(textwrap.dedent(code)).wait().returncode == -signal.SIGKILL
    (left,) = os.listdir(tmp_path)
    assert re.fullmatch(r"\.m\.[0-9a-f]{8}-\d+\.[0-9a-f]{16}\.part", left)
    others = [
        left.replace("-", "-1.", 1),  # of a process that lives
        ".m.0123abcd-99999999.0123456789abcdef.part",  # of another machine
        left.replace(".m.", ".n.", 1),  # of another file
        ".m.part",
    ]
    for name in others:
        (tmp_path / name).write_bytes(b"")
    model.save(tmp_path / "m")
    assert sorted(os.listdir(tmp_path)) == sorted([*others, "m"])


@pytest.mark.parametrize("n_kills", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_a_process_killed_while_saving_leaves_a_whole_file(model, tmp_path, n_kills):
    path = tmp_path / "m"
    model.save(path)
    code = f"""
        import numpy as np, spinney
        X = np.random.default_rng(0).normal(size=(20000, 2))
        model = spinney.DecisionTreeRegressor().fit(X, X[:, 0] * X[:, 1])
        print("ready", flush=True)
        while True:
            model.save({str(path)!r})
    """
    rng = np.random.default_rng(82)
    sizes = set()
    for _ in range(n_kills):
        program = Program(textwrap.dedent(code))
        assert program.stdout.readline() == "ready\n"
        for _ in range(5):
            time.sleep(float(rng.uniform(0.005, 0.02)))
            spinney.load(path)  # whole at any moment
        os.kill(program.pid, signal.SIGKILL)
        assert program.wait().returncode == -signal.SIGKILL
        sizes.add(spinney.load(path).tree_.node_count)
    assert max(sizes) > 1000


def test_unwritable_and_missing_places_are_os_errors(model, tmp_path):
    with pytest.raises(FileNotFoundError, match="folder to save the model in does not exist"):
        model.save(tmp_path / "absent" / "m")
    with pytest.raises(IsADirectoryError):
        model.save(tmp_path)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotADirectoryError):
        model.save(tmp_path / "file" / "m")
    with pytest.raises(OSError, match="proc"):
        model.save("/proc/m")
    for loader in (spinney.load, spinney.load_predictor):
        with pytest.raises(FileNotFoundError, match="absent"):
            loader(tmp_path / "absent")
        with pytest.raises(IsADirectoryError):
            loader(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["file"]
