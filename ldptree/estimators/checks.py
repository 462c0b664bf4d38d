from ldptree.parameters import *  # noqa
