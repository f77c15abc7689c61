"""The webs that Tamias is measured and shown on, and the measurements. Nothing else imports this."""
