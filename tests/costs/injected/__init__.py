"""What runs in the process of a broker whose costs are counted: nothing of it is in the product.

`python tests/costs/injected CONTROL CHECKOUT ARGUMENT ...` replaces the clocks and the pollers, and then runs
`python -m barnabas ARGUMENT ...` with the code of a checkout. It relies on the command line, on `select.epoll` and on
trio, not on names of the broker, so that it counts older and newer commits as well.

The modules import each other relatively, because the package has no fixed name: in the process of the broker the
folder `tests` of the counted checkout must not be found in its place.
"""
