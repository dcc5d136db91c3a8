package script

import (
	"fmt"
	"time"

	"github.com/parley-run/parley/model"
)

// actions reads what follows the first word of an action.
var actions = map[string]func(*line) (action, error){
	"say": func(l *line) (action, error) {
		text, err := l.quoted()
		return say(text, 0), err
	},
	"words": func(l *line) (action, error) {
		text, delay, err := textAndDelay(l)
		return words(text, delay), err
	},
	"repeat": func(l *line) (action, error) {
		n, err := l.number()
		if err != nil {
			return nil, err
		}
		text, delay, err := textAndDelay(l)
		return repeat(n, text, delay), err
	},
	"forever": func(l *line) (action, error) {
		text, delay, err := textAndDelay(l)
		return forever(text, delay), err
	},
	"reply": func(l *line) (action, error) {
		delay, err := l.optionalTime()
		return reply(delay), err
	},
	"results": func(l *line) (action, error) {
		delay, err := l.optionalTime()
		return results(delay), err
	},
	"call": func(l *line) (action, error) {
		name := l.word()
		if name == "" {
			return nil, l.errorf("want the name of a tool")
		}
		args, err := l.object()
		return call(name, args), err
	},
	"wait": func(l *line) (action, error) {
		d, err := l.time()
		return wait(d), err
	},
	"deaf": func(*line) (action, error) { return deaf, nil },
	"usage": func(l *line) (action, error) {
		in, err := l.number()
		if err != nil {
			return nil, err
		}
		out, err := l.number()
		return usage(in, out), err
	},
	"finish": readFinish,
	"end":    func(*line) (action, error) { return end, nil },
	"fail":   readFail,
}

// enders are the actions that nothing can follow.
var enders = map[string]bool{"finish": true, "end": true, "fail": true, "forever": true}

func textAndDelay(l *line) (string, time.Duration, error) {
	text, err := l.quoted()
	if err != nil {
		return "", 0, err
	}
	delay, err := l.optionalTime()
	return text, delay, err
}

func readFinish(l *line) (action, error) {
	switch reason := model.FinishReason(l.word()); reason {
	case "", model.FinishStop, model.FinishCalls, model.FinishLength, model.FinishFiltered:
		return finish(reason), nil
	default:
		return nil, l.errorf("unknown reason %s; there are stop, calls, length and filtered", excerpt(string(reason)))
	}
}

// failures are the typed errors of a model by their names in a script.
var failures = map[string]error{
	"cut":          model.ErrCut,
	"malformed":    model.ErrMalformed,
	"refused":      model.ErrRefused,
	"unavailable":  model.ErrUnavailable,
	"rate-limited": model.ErrRateLimited,
	"overflow":     model.ErrOverflow,
	"timeout":      model.ErrTimeout,
}

func readFail(l *line) (action, error) {
	name := l.word()
	err, ok := failures[name]
	if !ok {
		return nil, l.errorf("unknown failure %s; there are cut, malformed, refused, unavailable, rate-limited, overflow and timeout",
			excerpt(name))
	}
	place := fmt.Sprintf("script %s:%d", l.script, l.index)
	retry := false
	var after time.Duration
	if ahead := *l; ahead.word() == "after" {
		retry = true
		l.word()
		d, err := l.time()
		if err != nil {
			return nil, err
		}
		after = d
	}
	text, syntaxErr := l.optionalQuoted()
	if syntaxErr != nil {
		return nil, syntaxErr
	}
	if text != "" {
		place += ": " + text
	}
	err = fmt.Errorf("%s: %w", place, err)
	if retry {
		err = &model.RetryError{Err: err, After: after}
	}
	return fail(err), nil
}
