# The server, from this repository alone and without torch:
#     docker build -t restore .
#     docker run --rm -p 8000:8000 restore
FROM python:3.11-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY restore ./restore
COPY assets ./assets
COPY models ./models
RUN python -m venv /opt/restore && /opt/restore/bin/pip install --no-cache-dir ".[serve,pdf]"

FROM python:3.11-slim
COPY --from=build /opt/restore /opt/restore
ENV PATH=/opt/restore/bin:$PATH
RUN useradd --system --create-home restore
USER restore
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=10s --start-period=30s CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health', timeout=5)"]
CMD ["restore", "serve", "--host", "0.0.0.0", "--port", "8000"]
