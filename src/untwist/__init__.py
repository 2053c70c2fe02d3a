"""Learn the truth from data that lies: twist-proper losses and PILBoost."""
