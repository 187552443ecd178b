package main

import (
	"encoding/json"
	"path/filepath"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

func init() {
	// Build: files (path to text) in memory, built at path. The answer has the YAML text and the objects in order.
	// Fields: files, path, loadRestrictions ("none" lifts them).
	operations["kustomize.build"] = func(request json.RawMessage) (any, error) {
		var in struct {
			Files            map[string]string `json:"files"`
			Path             string            `json:"path"`
			LoadRestrictions string            `json:"loadRestrictions"`
		}
		if err := json.Unmarshal(request, &in); err != nil {
			return nil, err
		}
		disk := filesys.MakeFsInMemory()
		for path, text := range in.Files {
			if err := disk.WriteFile(filepath.Join("/tree", path), []byte(text)); err != nil {
				return nil, err
			}
		}
		options := krusty.MakeDefaultOptions()
		if in.LoadRestrictions == "none" {
			options.LoadRestrictions = types.LoadRestrictionsNone
		}
		built, err := krusty.MakeKustomizer(options).Run(disk, filepath.Join("/tree", in.Path))
		if err != nil {
			return nil, err
		}
		text, err := built.AsYaml()
		if err != nil {
			return nil, err
		}
		objects := []json.RawMessage{}
		for _, resource := range built.Resources() {
			one, err := resource.AsYAML()
			if err != nil {
				return nil, err
			}
			object, err := yaml.YAMLToJSON(one)
			if err != nil {
				return nil, err
			}
			objects = append(objects, object)
		}
		return map[string]any{"text": string(text), "objects": objects}, nil
	}
}
