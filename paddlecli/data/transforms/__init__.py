"""What is done to a raw value before a network sees it: listed in the recipe, learned from the train
split, frozen into the model, and run by the same objects in training and in prediction.

`base` has what a transform is and how several make a chain; `tables`, `text` and `pictures` have the
transforms. This package imports nothing, so that recipes can be listed and checked cheaply.
"""
