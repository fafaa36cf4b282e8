"""Fields of an object: what a patch changed, and the way back past what others changed meanwhile."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from loadstone.collect.targets.kubernetes.changes import (
    ABSENT,
    IDLE,
    REPLICAS,
    Field,
    differences,
    get,
    in_order,
    rewritten,
)

BEFORE: dict[str, Any] = {
    "metadata": {"name": "web", "annotations": {"owner": "us", "deployment.kubernetes.io/revision": "1"}},
    "spec": {
        "replicas": 2,
        "template": {
            "spec": {
                "containers": [
                    {
                        "name": "app",
                        "image": "app:1",
                        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                    },
                    {"name": "proxy", "image": "proxy:1", "args": ["-v", "1"]},
                ]
            }
        },
    },
}


def changed(**values: Any) -> dict[str, Any]:
    after = copy.deepcopy(BEFORE)
    app, proxy = after["spec"]["template"]["spec"]["containers"]
    app |= values.get("app", {})
    proxy |= values.get("proxy", {})
    after["metadata"]["annotations"] |= values.get("annotations", {})
    return after


def back(current: dict[str, Any], fields: list[Field]) -> tuple[dict[str, Any], list[str], list[str]]:
    found, written, left = rewritten(current, fields, lambda each: each.before)
    return found, list(map(str, written)), list(map(str, left))


def test_each_field_is_named_and_goes_back() -> None:
    after = changed(app={"image": "app:2"}, proxy={"args": ["-q"]}, annotations={"note": "x"})
    fields = differences(BEFORE, {"new": after})
    assert list(map(str, fields)) == [
        "metadata.annotations.note",
        "spec.template.spec.containers[app].image",
        "spec.template.spec.containers[proxy].args",
    ]
    assert back(after, fields) == (BEFORE, list(map(str, fields)), [])


def test_the_revision_of_the_server_is_not_ours_to_put_back() -> None:
    after = changed(annotations={"deployment.kubernetes.io/revision": "7"})
    assert differences(BEFORE, {"new": after}) == []


def test_a_list_with_other_names_is_one_field_and_keeps_its_order() -> None:
    after = changed(app={"env": [{"name": "C", "value": "3"}, {"name": "B", "value": "2"}]})
    (field,) = differences(BEFORE, {"new": after})
    assert str(field) == "spec.template.spec.containers[app].env"
    assert back(after, [field])[0] == BEFORE


def test_two_variants_that_change_a_list_each_in_its_way() -> None:
    """One gives a variable another value, one removes it: the whole list is the field, and knows both."""
    value = changed(app={"env": [{"name": "A", "value": "9"}, {"name": "B", "value": "2"}]})
    gone = changed(app={"env": [{"name": "B", "value": "2"}]})
    (field,) = differences(BEFORE, {"value": value, "gone": gone})
    for state in (value, gone, BEFORE):
        found, _, left = back(state, [field])
        assert (found, left) == (BEFORE, [])
    assert field.wanted("value") == get(value, field.path) and field.wanted("other") == field.before


def test_differences_are_told_part_by_part_without_credentials() -> None:
    env = [
        {"name": "B", "value": "3"},
        {"name": "API_TOKEN", "value": "s3cret"},
        {"name": "REF", "valueFrom": {"a": 1}},
    ]
    field = Field(("spec", "containers"), ABSENT, {})
    was = [{"name": "app", "image": "app:1", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}]
    now = [{"name": "app", "image": "app:2", "env": env}, {"name": "side", "image": "s:1", "extra": {}}]
    assert field.texts(was, now) == [
        "spec.containers[app].image: app:1 -> app:2",
        "spec.containers[app].env[A]: 1 -> absent",
        "spec.containers[app].env[B]: 2 -> 3",
        "spec.containers[app].env[API_TOKEN]: absent -> (redacted)",
        "spec.containers[app].env[REF].valueFrom.a: absent -> 1",
        "spec.containers[side].image: absent -> s:1",
        "spec.containers[side].extra: absent -> {}",
    ]
    assert field.texts(now, now[::-1]) == ["spec.containers: ['app', 'side'] -> ['side', 'app']"]
    assert field.texts(was, was) == []
    volumes = Field(("spec", "volumes"), ABSENT, {})
    was, now = ([{"name": "config", "configMap": {"name": name, "optional": False}}] for name in ("old", "new"))
    assert volumes.texts(was, now) == ["spec.volumes[config].configMap.name: old -> new"]
    assert volumes.texts(ABSENT, [{"name": "bare"}]) == ["spec.volumes[bare]: absent -> {'name': 'bare'}"]
    token = Field(("env", ("name", "API_TOKEN"), "value"), "old", {"new": "s3cret"})
    assert token.texts("old", "s3cret") == ["env[API_TOKEN].value: (redacted) -> (redacted)"]
    assert token.texts("s3cret", ABSENT, " is now {now}, was {was}") == [
        "env[API_TOKEN].value is now absent, was (redacted)"
    ]


def test_what_others_changed_is_left_and_named() -> None:
    after = changed(app={"image": "app:2"}, proxy={"image": "proxy:2"})
    fields = differences(BEFORE, {"new": after})
    theirs = copy.deepcopy(after)
    theirs["spec"]["template"]["spec"]["containers"][0]["image"] = "app:3"
    theirs["spec"]["paused"] = True
    found, written, left = back(theirs, fields)
    assert (written, left) == (
        ["spec.template.spec.containers[proxy].image"],
        ["spec.template.spec.containers[app].image"],
    )
    assert found["spec"]["paused"] is True and found["spec"]["template"]["spec"]["containers"][0]["image"] == "app:3"


def test_of_a_list_that_others_changed_too_our_elements_go_back_and_theirs_stay() -> None:
    ours = changed(app={"env": [{"name": "B", "value": "9"}, {"name": "C", "value": "3"}]})
    (field,) = differences(BEFORE, {"new": ours})
    theirs = copy.deepcopy(ours)
    env = theirs["spec"]["template"]["spec"]["containers"][0]["env"]
    env.append({"name": "D", "value": "theirs"})
    found, written, left = back(theirs, [field])
    assert written == left == ["spec.template.spec.containers[app].env"]
    now = get(found, field.path)
    assert now == [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "D", "value": "theirs"}]
    assert field.texts(field.before, now) == ["spec.template.spec.containers[app].env[D]: absent -> theirs"]
    assert back(found, [field]) == (found, [], left), "once is enough"
    # What they gave another value is theirs, and while measuring nothing of theirs is touched.
    env[1]["value"] = "theirs too"
    assert {"name": "C", "value": "theirs too"} in get(back(theirs, [field])[0], field.path)
    assert rewritten(theirs, [field], lambda each: each.wanted("new")) == (theirs, [], [field])


def test_a_list_of_which_only_ours_were_elements_goes_again() -> None:
    before: dict[str, Any] = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "app", "image": "1"}]}}
    ours, theirs = copy.deepcopy(before), copy.deepcopy(before)
    ours["spec"]["containers"] = [{"name": "app", "image": "1", "env": [{"name": "A"}]}, {"name": "side", "image": "s"}]
    theirs["spec"]["containers"] = [
        {"name": "app", "image": "2", "env": [{"name": "A"}]},
        {"name": "side", "image": "s"},
        {"name": "new", "image": "n"},
    ]
    (field,) = differences(before, {"new": ours})
    found, written, left = back(theirs, [field])
    assert written == left == ["spec.containers"]
    assert found["spec"]["containers"] == [{"name": "app", "image": "2"}, {"name": "new", "image": "n"}]


def test_a_container_that_others_removed_is_left() -> None:
    fields = differences(BEFORE, {"new": changed(proxy={"image": "proxy:2"})})
    theirs = copy.deepcopy(BEFORE)
    del theirs["spec"]["template"]["spec"]["containers"][1]
    assert back(theirs, fields) == (theirs, [], ["spec.template.spec.containers[proxy].image"])


def test_a_field_that_was_not_there_goes_again() -> None:
    before = {"metadata": {"name": "web"}, "spec": {}}
    after = {"metadata": {"name": "web", "labels": {"a": "1"}}, "spec": {"suspend": True}}
    fields = differences(before, {IDLE: after})
    assert [each.before for each in fields] == [ABSENT, ABSENT]
    # The server does not tell an empty mapping of labels from none.
    assert back(after, fields)[0] == {"metadata": {"name": "web", "labels": {}}, "spec": {}}


def test_wanted_values() -> None:
    field = Field(REPLICAS, 2, {IDLE: 0, "plain": 5})
    assert [field.wanted("plain"), field.wanted("istio"), field.wanted(None)] == [5, 0, 0]
    dependency = Field(REPLICAS, 2, {"plain": 5})
    assert [dependency.wanted("plain"), dependency.wanted("istio"), dependency.wanted(None)] == [5, 2, 2]
    assert not field.is_known(7) and field.is_known(2) and field.is_known(0)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
        | st.lists(inner, max_size=3)
        | st.lists(st.fixed_dictionaries({"name": st.sampled_from("xyz"), "value": inner}), max_size=3)
    ),
    max_leaves=12,
)
SPEC = st.dictionaries(st.sampled_from("abcd"), JSON, max_size=4)


@given(SPEC, st.lists(SPEC, min_size=1, max_size=3))
def test_from_every_state_of_ours_the_way_leads_back(spec: dict[str, Any], others: list[dict[str, Any]]) -> None:
    before = {"metadata": {"name": "web"}, "spec": spec}
    afters = {str(index): {"metadata": {"name": "web"}, "spec": other} for index, other in enumerate(others)}
    fields = [Field.decoded(each.encoded()) for each in differences(before, afters)]
    for name, after in afters.items():
        assert back(after, fields)[::2] == (before, [])
        assert rewritten(before, fields, lambda each, name=name: each.wanted(name))[0] == after


def test_a_patch_leaves_containers_and_variables_where_they_are() -> None:
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "proxy", "image": "p:2"}, {"name": "new"}]}}}}
    ordered = in_order(patch, BEFORE)["spec"]["template"]["spec"]
    assert ordered["containers"] == [{"name": "proxy", "image": "p:2"}, {"name": "new"}]
    assert ordered["$setElementOrder/containers"] == [{"name": "app"}, {"name": "proxy"}, {"name": "new"}]
    env = [{"name": "C", "value": "3"}, {"name": "A", "$patch": "delete"}]
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "app", "env": env}]}}}}
    (app,) = in_order(patch, BEFORE)["spec"]["template"]["spec"]["containers"]
    assert app["$setElementOrder/env"] == [{"name": "B"}, {"name": "C"}]
