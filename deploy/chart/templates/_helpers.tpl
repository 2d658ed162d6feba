{{- define "slipstream.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 63 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "slipstream.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "slipstream.labels" -}}
{{ include "slipstream.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- /* The port of an address such as ":8080". */}}
{{- /* The address of a listener: a text, a mapping with it, or the first of a list of these. */}}
{{- define "slipstream.address" -}}
{{- if kindIs "slice" . }}{{ include "slipstream.address" (first .) }}
{{- else if kindIs "map" . }}{{ .address }}
{{- else }}{{ . }}
{{- end }}
{{- end }}
{{- define "slipstream.port" -}}
{{ splitList ":" (include "slipstream.address" .) | last }}
{{- end }}
