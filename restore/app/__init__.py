"""Restoration for programs and browsers: a server, and a page that uses it or works alone as static files.

`answers` restores the pictures posted to `server`, and `reference` documents the server. Without a server the page runs
graphs in onnxruntime-web, which `runtime` installs. `assembly` collects the files of the page.
"""
