#!/usr/bin/env bash
# Checks the chart and the compose file in deploy: helm lint, the types of the Kubernetes objects,
# their configuration with slipstream config check, values that must be rejected, and the project
# with the loader of Compose.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd tools/deploy && CGO_ENABLED=0 "$go" build -o "$work/" . helm.sh/helm/v3/cmd/helm)
"$go" build -o "$work/slipstream" ./cmd/slipstream
export DATABASE_URL=postgres://gateway@db/shop SHOP_URL=postgres://gateway@db/shop OWNER_PASSWORD=a GATEWAY_PASSWORD=b

fail() {
	echo "check-deploy: $*" >&2
	exit 1
}
render() { "$work/helm" template shop deploy/chart --kube-version 1.31.0 "$@"; }

"$work/helm" lint --strict deploy/chart
cat >"$work/full.yaml" <<'VALUES'
config:
  tiers: { disk: { path: /var/lib/slipstream/tier, size: 1GiB } }
  frontends: { http: [{ address: "0.0.0.0:8081", open: true }, "127.0.0.1:8082"], redis: ":6380" }
  redis: { open: true }
  admin: { metrics: ":9101" }
image: { tag: "v1.2.3", pullSecrets: [registry] }
files: keys
service: { type: LoadBalancer, redis: 6379 }
metrics: { enabled: true }
podLabels: { team: shop }
podAnnotations: { a: b }
nodeSelector: { disk: fast }
tolerations: [{ key: a, operator: Exists }]
affinity: { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } }
VALUES
: >"$work/default.yaml"
for values in default full; do
	render -f "$work/$values.yaml" >"$work/objects"
	"$work/deploy" kubernetes <"$work/objects"
	render -f "$work/$values.yaml" -s templates/configmap.yaml | sed '1,/^  slipstream.yaml: |$/d; s/^    //' >"$work/slipstream.yaml"
	"$work/slipstream" config check --offline -c "$work/slipstream.yaml"
done
for want in 'containerPort: 8081' 'name: redis, port: 6379' 'containerPort: 9101' 'prometheus.io/port: "9101"' 'secretName: keys' 'image: "slipstream:v1.2.3"'; do
	grep -qF "$want" "$work/objects" || fail "the objects do not contain $want"
done
render -f "$work/full.yaml" --set 'config.admin.metrics=null,config.admin.address=:9100,config.admin.allow_remote=true' >"$work/before"
grep -qF 'name: metrics, containerPort: 9100' "$work/before" || fail 'the former values, with allow_remote, do not create a metrics port'
refused() { # values from which no gateway can be rendered
	! render "$@" >"$work/out" 2>&1 || fail "accepted: $*"
	echo "refused: $*"
}
refused --set replica=3
refused --set metrics.enabled=true
refused --set service.redis=6379
refused --set config.frontends.http=127.0.0.1:8080
refused --set image.tag=
sed 's/readOnlyRootFilesystem/readOnlyRoot/' "$work/objects" | "$work/deploy" kubernetes >/dev/null 2>&1 && fail 'a field that is unknown to Kubernetes was accepted'

"$work/deploy" compose deploy/compose/compose.yaml
"$work/slipstream" config check --offline -c deploy/compose/slipstream.yaml
sed 's/read_only:/readonly:/' deploy/compose/compose.yaml >"$work/compose.yaml"
! "$work/deploy" compose "$work/compose.yaml" >/dev/null 2>&1 || fail 'a key that is unknown to Compose was accepted'
env -u OWNER_PASSWORD "$work/deploy" compose deploy/compose/compose.yaml >/dev/null 2>&1 && fail 'a project without a password was accepted'
echo "check-deploy: passed"
