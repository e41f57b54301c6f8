"""Workloads of arithmetic units, caches and memory."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch

from perfcast.domains.interference.measuring.workloads.workload import KernelWorkload, Workload
from perfcast.microbench.kernels import KIB, MIB


class Sort(KernelWorkload):
    """Sort of random whole numbers in the second-level cache."""

    MEANING = "sort of 32,768 random 64-bit integers"
    KERNEL = ("sort", "int64", 512 * KIB)


class MatrixProduct(KernelWorkload):
    """Dense arithmetic on cached operands."""

    MEANING = "product of two matrices of float64, 209 by 209"
    KERNEL = ("matmul", "float64", MIB)


class Triad(KernelWorkload):
    """Memory bandwidth, beyond the caches of one core."""

    MEANING = "four passes of a += s c over 16 MiB"
    RESOURCE = "memory"
    KERNEL = ("triad", "float64", 16 * MIB)


class Chase(KernelWorkload):
    """Memory latency: dependent loads, beyond the caches of one core."""

    MEANING = "65,536 dependent loads of a random cycle in 16 MiB"
    RESOURCE = "cache"
    KERNEL = ("chase", "lines", 16 * MIB)


class Fourier(Workload):
    """Complex Fourier transform, whose strides need the second-level cache."""

    MEANING = "Fourier transform of 16,384 complex points"
    RESOURCE = "cache"
    POINTS = 2**14

    def prepare(self) -> None:
        """Draw the points."""
        parts = np.random.default_rng(self.seed).standard_normal((self.POINTS, 2))
        self._points = parts.view(np.complex128).ravel()

    def operate(self) -> None:
        """Transform the points."""
        np.fft.fft(self._points)


class Inference(Workload):
    """Inference of a small convolutional network with torch, one image per request."""

    MEANING = "classification of one image of 64 by 64 pixels by a convolutional network"

    def prepare(self) -> None:
        """Create the network with random weights, and an image."""
        torch.manual_seed(self.seed)
        widths = (3, 16, 32, 64)
        blocks = [
            layer
            for before, after in pairwise(widths)
            for layer in (torch.nn.Conv2d(before, after, 3, stride=2, padding=1), torch.nn.ReLU())
        ]
        self._network = torch.nn.Sequential(*blocks, torch.nn.Flatten(), torch.nn.Linear(64 * 8 * 8, 100)).eval()
        self._image = torch.rand(1, 3, 64, 64)

    def operate(self) -> None:
        """Classify the image."""
        with torch.inference_mode():
            self._network(self._image)


class Resize(Workload):
    """Resizing of a photo with an antialiasing filter, as a service of thumbnails does."""

    MEANING = "bicubic resize of a picture from 640 by 480 to 224 by 168 pixels"
    RESOURCE = "cache"

    def prepare(self) -> None:
        """Draw a picture."""
        generator = torch.Generator().manual_seed(self.seed)
        self._picture = torch.rand(1, 3, 480, 640, generator=generator)

    def operate(self) -> None:
        """Resize the picture and round it to bytes."""
        with torch.inference_mode():
            small = torch.nn.functional.interpolate(
                self._picture, size=(168, 224), mode="bicubic", antialias=True, align_corners=False
            )
            small.mul_(255).clamp_(0, 255).to(torch.uint8)
