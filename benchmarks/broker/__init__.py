"""One broker on loopback: publisher to broker to subscriber, with many subscriptions, beside other brokers."""
