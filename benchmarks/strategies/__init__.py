"""Every routing strategy on one network and one workload: what it says, what it keeps, what it sends in vain."""
