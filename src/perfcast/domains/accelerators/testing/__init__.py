"""Generated inputs."""
