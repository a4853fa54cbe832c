"""The peers that are known; a new one is a class, and a line here."""

from __future__ import annotations

from pagewise.workloads.peers.direct import Cblas, Fftw
from pagewise.workloads.peers.hpcc import Hpcc
from pagewise.workloads.peers.likwid import Likwid
from pagewise.workloads.peers.multichase import Multichase
from pagewise.workloads.peers.peer import Peer
from pagewise.workloads.peers.streams import BabelStream, BandwidthBenchmark, Stream

PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        Likwid(),
        Stream(),
        BabelStream(),
        BandwidthBenchmark(),
        Multichase(),
        Hpcc(),
        Cblas(),
        Fftw(),
    )
}
