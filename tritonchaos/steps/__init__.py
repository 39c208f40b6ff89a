"""Steps: things done to the server or its model repository, one file each."""
