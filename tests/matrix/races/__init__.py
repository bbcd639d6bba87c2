"""Two at once, in many of the orders in which the steps of two that act at the same moment can be done."""
