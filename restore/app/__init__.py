"""The local page: restoration in a browser, by this machine's own server or from static files.

`answers` restores what the page posts and `server` serves this machine alone; where there is no such server, the page
runs graphs in onnxruntime-web, which `runtime` installs. `assembly` says which files make up the page.
"""
