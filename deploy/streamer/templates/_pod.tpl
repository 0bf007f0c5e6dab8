{{/* What the pods of workers and exporters share. */}}

{{- define "streamer.labels" -}}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}

{{- define "streamer.system" -}}
{{ .Values.system | default (printf "%s/%s" .Release.Namespace .Release.Name) }}
{{- end }}

{{/* What the values say of the pods of one role. */}}
{{- define "streamer.own" -}}
{{- toYaml (mustMergeOverwrite (deepCopy .root.Values.pod) (.pod | default dict)) }}
{{- end }}

{{- define "streamer.podMetadata" -}}
{{- $own := include "streamer.own" . | fromYaml }}
labels: {{- include "streamer.labels" . | nindent 2 }}
  {{- with $own.labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
annotations:
  streamer/settings: {{ include "streamer.settings" .root | sha256sum }}
  {{- with $own.annotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- define "streamer.settings" -}}
{{ .Values.settings | default (.Files.Get "streamer.toml") }}
{{- end }}

{{- define "streamer.pod" -}}
{{- $own := include "streamer.own" . | fromYaml }}
{{- $account := .root.Values.serviceAccount }}
serviceAccountName: {{ $account.name | default (ternary .root.Release.Name "default" $account.create) }}
automountServiceAccountToken: false
{{- range $key := list "nodeSelector" "tolerations" "affinity" "priorityClassName" }}
{{- with index $own $key }}
{{ $key }}: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
enableServiceLinks: false # no STREAMER_… of the cluster's
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "streamer.labels" . | nindent 8 }}
volumes:
  - {name: settings, configMap: {name: {{ .settings | default (printf "%s-settings" .root.Release.Name) }}}}
  - {name: secrets, secret: {secretName: {{ .secret.existing | default .name }}, defaultMode: 288, optional: true}} # 0440
  - {name: tmp, emptyDir: {sizeLimit: 128Mi}}
  {{- with $own.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- define "streamer.container" -}}
{{- $own := include "streamer.own" . | fromYaml }}
image: {{ .root.Values.image.repository }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
env:
  - {name: STREAMER_CONFIG, value: /etc/streamer/streamer.toml}
{{- with .redis }}
  - {name: STREAMER_REDIS__USERNAME, value: {{ . | quote }}}
  - {name: STREAMER_REDIS__PASSWORD_FILE, value: /run/secrets/streamer/redis-password}
{{- end }}
{{- with $own.extraEnv }}
{{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: settings, mountPath: /etc/streamer, readOnly: true}
  - {name: secrets, mountPath: /run/secrets/streamer, readOnly: true}
  - {name: tmp, mountPath: /tmp}
  {{- with $own.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
