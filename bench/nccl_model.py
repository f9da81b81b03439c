"""Prints the modelled ncclAllGather beside every published figure the machine files are held against."""

from __future__ import annotations

from cuco.testbed.vtime.published import FIGURES, modelled_us


def main() -> None:
    """One row per figure; a star where the model must be within 20 %."""
    print("| machine | GPUs | MiB | published us | modelled us | error | busbw GB/s, both | source |")
    print("|---|---|---|---|---|---|---|---|")
    for figure in FIGURES:
        us = modelled_us(figure)
        busbw = figure.busbw * figure.us / us
        star = "*" if figure.gate else ""
        print(
            f"| {figure.machine} | {figure.ranks} | {figure.bytes >> 20} | {figure.us:.1f}{star} | {us:.1f} "
            f"| {us / figure.us - 1:+.0%} | {figure.busbw:.0f} / {busbw:.0f} | {figure.source} |"
        )


if __name__ == "__main__":
    main()
