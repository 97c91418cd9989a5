"""Studies of the method itself (paper 4.3): do its scores agree with those they stand for?"""
