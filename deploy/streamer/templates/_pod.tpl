{{/* What the pods of workers and exporters share. */}}

{{- define "streamer.labels" -}}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}

{{- define "streamer.settings" -}}
{{ .Values.settings | default (.Files.Get "streamer.toml") }}
{{- end }}

{{- define "streamer.pod" -}}
automountServiceAccountToken: false
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
{{- end }}

{{- define "streamer.container" -}}
image: {{ .root.Values.image.repository }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}
env:
  - {name: STREAMER_CONFIG, value: /etc/streamer/streamer.toml}
{{- with .redis }}
  - {name: STREAMER_REDIS__USERNAME, value: {{ . | quote }}}
  - {name: STREAMER_REDIS__PASSWORD_FILE, value: /run/secrets/streamer/redis-password}
{{- end }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: settings, mountPath: /etc/streamer, readOnly: true}
  - {name: secrets, mountPath: /run/secrets/streamer, readOnly: true}
  - {name: tmp, mountPath: /tmp}
{{- end }}
