"""The commands that run a broker or talk to one: broker, pub, sub, advertise, status, routes, trace, load, token.

None of them imports the matcher before it runs.
"""
