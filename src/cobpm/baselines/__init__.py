"""What the paper compares with."""

from __future__ import annotations

from cobpm.baselines.bag_of_words import BagOfWords, TopicModel, bag_of_words, plsa

__all__ = ["BagOfWords", "TopicModel", "bag_of_words", "plsa"]
