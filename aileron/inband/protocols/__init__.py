"""The three protocols of language models, each as the same interface: requests read, tools offered, replies spliced."""
