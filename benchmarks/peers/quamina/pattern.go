package main

import (
	"encoding/json"
	"fmt"
)

// pattern turns a filter tree into one quamina pattern. A pattern is a conjunction over fields, each with a list of
// acceptable values; there are no numeric ranges, and nothing joins alternatives over different fields.
func pattern(tree []any) (string, error) {
	fields := map[string][]any{}
	if err := collect(tree, fields); err != nil {
		return "", err
	}
	text, err := json.Marshal(fields)
	return string(text), err
}

func collect(tree []any, fields map[string][]any) error {
	kind := tree[0].(string)
	switch kind {
	case "and":
		for _, child := range tree[1:] {
			if err := collect(child.([]any), fields); err != nil {
				return err
			}
		}
		return nil
	case "cmp":
		if tree[2] != "=" {
			return fmt.Errorf("no operator for %s", tree[2])
		}
		return add(fields, tree[1].(string), []any{tree[3]})
	case "in":
		return add(fields, tree[1].(string), tree[2].([]any))
	case "between":
		return fmt.Errorf("no numeric ranges")
	}
	return fmt.Errorf("no operator for %s", kind)
}

func add(fields map[string][]any, name string, values []any) error {
	if _, taken := fields[name]; taken {
		return fmt.Errorf("no two conditions on one field")
	}
	fields[name] = values
	return nil
}
