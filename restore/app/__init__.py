"""Restoration for programs and browsers: a server, and the page that asks it or runs alone as static files.

`answers` restores what is posted to `server`, and `reference` describes it; where there is no such server, the page
runs graphs in onnxruntime-web, which `runtime` installs. `assembly` says which files make up the page.
"""
