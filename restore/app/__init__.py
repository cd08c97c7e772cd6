"""The local page: restoration in a browser, from static files that any web server can hand out.

`runtime` installs onnxruntime-web, `assembly` says which files make up the site, `server` serves them to this machine.
"""
