"""The mutation test of the judge as a command."""
