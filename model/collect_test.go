package model_test

import (
	"encoding/json/jsontext"
	"errors"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/model"
)

func TestCollect(t *testing.T) {
	call := model.Call{ID: "1", Name: "look", Args: jsontext.Value("{}")}
	broken := errors.New("broken")
	for _, tt := range []struct {
		name   string
		chunks []model.Chunk
		err    error // after the chunks
		want   model.Reply
		deltas []string
		wrong  error
	}{
		{
			name:   "a whole reply",
			chunks: []model.Chunk{{Text: "Good "}, {}, {Text: "day."}, {Finish: &model.Finish{Reason: model.FinishStop, Usage: model.Usage{InputTokens: 1, OutputTokens: 2}}}},
			want:   model.Reply{Text: "Good day.", Reason: model.FinishStop, Usage: model.Usage{InputTokens: 1, OutputTokens: 2}},
			deltas: []string{"Good ", "day."},
		},
		{
			name:   "calls",
			chunks: []model.Chunk{{Text: "Wait."}, {Call: &call}, {Call: &call}, {Finish: &model.Finish{Reason: model.FinishCalls}}},
			want:   model.Reply{Text: "Wait.", Calls: []model.Call{call, call}, Reason: model.FinishCalls},
			deltas: []string{"Wait."},
		},
		{
			name:   "no end mark",
			chunks: []model.Chunk{{Text: "Looks whole."}},
			want:   model.Reply{Text: "Looks whole."},
			deltas: []string{"Looks whole."},
			wrong:  model.ErrCut,
		},
		{name: "nothing", wrong: model.ErrCut},
		{
			name:   "an error in mid-stream",
			chunks: []model.Chunk{{Text: "Good "}},
			err:    broken,
			want:   model.Reply{Text: "Good "},
			deltas: []string{"Good "},
			wrong:  broken,
		},
	} {
		var deltas []string
		got, err := model.Collect(play(tt.chunks, tt.err), func(delta string) { deltas = append(deltas, delta) })
		if !errors.Is(err, tt.wrong) || tt.wrong == nil && err != nil {
			t.Errorf("%s: error %v, want %v", tt.name, err, tt.wrong)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: reply: -want +got\n%s", tt.name, diff)
		}
		if diff := cmp.Diff(tt.deltas, deltas); diff != "" {
			t.Errorf("%s: deltas: -want +got\n%s", tt.name, diff)
		}
		if again, _ := model.Collect(play(tt.chunks, tt.err), nil); !cmp.Equal(got, again) {
			t.Errorf("%s: without onDelta the reply is %+v", tt.name, again)
		}
	}
}

func play(chunks []model.Chunk, err error) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		for _, chunk := range chunks {
			if !yield(chunk, nil) {
				return
			}
		}
		if err != nil {
			yield(model.Chunk{}, err)
		}
	}
}
