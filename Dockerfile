# waybill alone in an image, without a shell and without root:
#
#   docker build -t waybill --build-arg VERSION="$(git describe --tags)" --build-arg COMMIT="$(git rev-parse HEAD)" .
#   docker run --rm -v waybill:/data -e WAYBILL_BASE_URL -e WAYBILL_API_KEY waybill list
#
# The store is in the volume /data. Without a volume it goes with the container, and the
# next run would not know what was sent.
FROM docker.io/library/golang:1.26.8-alpine@sha256:51a7c389a5ddaf82f527191a1e9bff9928655130a44e4975dd1d7e0acf59f1ae AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
ARG COMMIT=
ARG DATE=
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -o /waybill -ldflags "-s -w -funcalign=16 \
      -X github.com/waybill-cli/waybill/internal/buildinfo.version=$VERSION \
      -X github.com/waybill-cli/waybill/internal/buildinfo.commit=$COMMIT \
      -X github.com/waybill-cli/waybill/internal/buildinfo.date=$DATE" ./cmd/waybill \
    && mkdir -m 0700 /data && mkdir -m 1777 /scratch

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /waybill /usr/bin/waybill
COPY --from=build --chown=65532:65532 /data /data
COPY --from=build /scratch /tmp
ENV HOME=/data
USER 65532:65532
WORKDIR /data
VOLUME /data
ENTRYPOINT ["/usr/bin/waybill"]
