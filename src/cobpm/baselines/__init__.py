"""What the paper compares with: other estimates of divergences from two samples.

They stand on their own, take what `cobpm.compare` takes, and give one number without an interval.

    knn_divergence        nearest neighbours: Pérez-Cruz 2008; Póczos and Schneider 2011
    nwj_divergence        convex programs: Nguyen, Wainwright and Jordan 2010
    partition_divergence  cells with equally many points of y: Wang, Kulkarni and Verdú 2005
    histogram_divergence  a grid of equal cells
    bag_of_words          many sets as mixtures of topics: Bosch, Zisserman and Muñoz 2006
"""

from __future__ import annotations

from cobpm.baselines.bag_of_words import BagOfWords, TopicModel, bag_of_words, plsa
from cobpm.baselines.histogram import histogram_divergence
from cobpm.baselines.knn import knn_divergence, knn_log_ratios
from cobpm.baselines.nwj import NwjFit, nwj_divergence, nwj_fit
from cobpm.baselines.partition import partition_divergence

__all__ = [
    "BagOfWords",
    "NwjFit",
    "TopicModel",
    "bag_of_words",
    "histogram_divergence",
    "knn_divergence",
    "knn_log_ratios",
    "nwj_divergence",
    "nwj_fit",
    "partition_divergence",
    "plsa",
]
