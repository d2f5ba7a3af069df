"""From staged actions to a version: the commit loop and the rules of conflicts."""
