package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-run/parley/gateway"
	"github.com/parley-run/parley/kernel"
)

// lookTime is how long a reading may take to count what waits.
const lookTime = 2 * time.Second

// Watch takes in what a gateway and a runtime count themselves, each time that
// the metrics are read. It is called once.
func (m *Metrics) Watch(g *gateway.Gateway, rt *kernel.Runtime) {
	m.registry.MustRegister(&watched{gateway: g, runtime: rt})
}

// watched reads the counts of the parts.
type watched struct {
	gateway *gateway.Gateway
	runtime *kernel.Runtime
}

var (
	descHot     = prometheus.NewDesc("parley_executions_hot", "Conversations that are held in memory.", nil, nil)
	descActive  = prometheus.NewDesc("parley_executions_active", "Of these, those that are at work.", nil, nil)
	descStuck   = prometheus.NewDesc("parley_executions_stuck", "Conversations that cannot go on with this build.", nil, nil)
	descWaiting = prometheus.NewDesc("parley_messages_waiting", "Messages that wait for the turn before theirs.", nil, nil)
	descOpen    = prometheus.NewDesc("parley_streams_open", "Streams of events that are open.", nil, nil)
	descEnded   = prometheus.NewDesc("parley_streams_ended_total", "Streams that ended, by cause.", []string{"cause"}, nil)
	descFrames  = prometheus.NewDesc("parley_stream_frames_total", "Frames that were made for streams, by event.", []string{"event"}, nil)
	descBytes   = prometheus.NewDesc("parley_stream_sent_bytes_total", "Bytes of frames that were written.", nil, nil)
)

// Describe implements [prometheus.Collector].
func (w *watched) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{descHot, descActive, descStuck, descWaiting, descOpen, descEnded, descFrames, descBytes} {
		descs <- desc
	}
}

// Collect implements [prometheus.Collector].
func (w *watched) Collect(metrics chan<- prometheus.Metric) {
	send := func(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, kind, value, labels...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookTime)
	defer cancel()
	stats := w.runtime.Stats()
	send(descHot, prometheus.GaugeValue, float64(stats.Hot))
	send(descActive, prometheus.GaugeValue, float64(stats.Busy))
	send(descStuck, prometheus.GaugeValue, float64(stats.Stuck))
	send(descWaiting, prometheus.GaugeValue, float64(w.runtime.Backlog(ctx)))
	streams := w.gateway.Stats()
	send(descOpen, prometheus.GaugeValue, float64(streams.Open))
	for end, n := range streams.Ended {
		send(descEnded, prometheus.CounterValue, float64(n), string(end))
	}
	for event, n := range streams.Frames {
		send(descFrames, prometheus.CounterValue, float64(n), event)
	}
	send(descBytes, prometheus.CounterValue, float64(streams.Bytes))
}
