"""Fits over a cluster whose connections are encrypted, and where both ends show a certificate."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
from spinney import DecisionTreeRegressor, GradientBoostingRegressor, RandomForestRegressor

dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # of Dask and what it stands on
    pytest.mark.timeout(600),
]
N_ROWS, COLUMNS = 9_000, ["a", "b", "c"]


def frame():
    rng = np.random.default_rng(0)
    found = pd.DataFrame(rng.normal(size=(N_ROWS, 3)), columns=COLUMNS)
    return found.assign(y=found.a * found.b + rng.normal(size=N_ROWS))


@pytest.fixture
def security(tmp_path):
    """Return what makes all of a cluster show one certificate, and ask others for it."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl makes the certificate, and is not here")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = f"{openssl} req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=spinney -keyout {key} -out {certificate}"
    subprocess.run(command.split(), check=True, capture_output=True)
    mine = {
        f"tls_{who}_{what}": str(file)
        for who in ("client", "scheduler", "worker")
        for what, file in (("key", key), ("cert", certificate))
    }
    return distributed.Security(tls_ca_file=str(certificate), require_encryption=True, **mine)


@pytest.mark.slow
def test_models_are_the_same_over_encrypted_connections(security):
    rows = frame()
    here = [model.fit(rows[COLUMNS], rows.y).fingerprint() for model in models()]
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, security=security, protocol="tls://"
    )
    with cluster, distributed.Client(cluster, security=security) as client:
        assert all(address.startswith("tls://") for address in client.nthreads())
        there = dd.from_pandas(rows, npartitions=5)
        found = [model.fit(there[COLUMNS], there.y) for model in models()]
        assert [model.fingerprint() for model in found] == here
        predicted = found[0].predict(there[COLUMNS]).compute()
    assert (predicted == found[0].predict(rows[COLUMNS])).all()


def models():
    """Return models whose rows are shared out, whose trees are, and of one worker."""
    return [
        GradientBoostingRegressor(n_estimators=4, random_state=0),
        RandomForestRegressor(4, random_state=0),
        DecisionTreeRegressor(random_state=0),
    ]
