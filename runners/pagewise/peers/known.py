"""The peers that are known; a new one is a class, and a line here."""

from __future__ import annotations

from pagewise.peers.direct import Cblas, Fftw
from pagewise.peers.hpcc import Hpcc
from pagewise.peers.likwid import Likwid
from pagewise.peers.multichase import Multichase
from pagewise.peers.peer import Peer
from pagewise.peers.streams import BabelStream, BandwidthBenchmark, Stream

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
