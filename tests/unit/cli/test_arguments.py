"""Readers of numbers on the command line: values out of range are refused with the rule and the value."""

import argparse

import pytest

from perfcast.cli.arguments import add_shared, number, share, whole
from perfcast.cli.asking import FLAGS
from perfcast.inference.rules import find_rules


@pytest.mark.parametrize("text", ["0", "11", "1.5", "x", "", "1e1", "٣", "9" * 30])
def test_whole_refuses_other_texts_and_numbers_out_of_range(text):
    with pytest.raises(argparse.ArgumentTypeError, match=r"must be a whole number from 1 to 10, but it is '"):
        whole(1, 10)(text)


@pytest.mark.parametrize("text", ["0", "inf", "nan", "x"])
def test_number_refuses_other_texts_and_numbers_out_of_range(text):
    with pytest.raises(argparse.ArgumentTypeError, match=r"must be a number from 0.5 to 10, but it is '"):
        number(0.5, 10)(text)


def test_readers_return_values_in_range():
    assert (whole(1, 10)("+3"), number(0, 1)("1e-3"), share("0.9")) == (3, 0.001, 0.9)
    with pytest.raises(argparse.ArgumentTypeError, match=r"0\.9 means 90 %"):
        share("90")


def test_add_shared_declares_arguments_with_a_changed_help():
    parser = argparse.ArgumentParser()
    add_shared(parser, "dataset", "--out", out="file of the answer")
    options = parser.parse_args(["host_gemm", "--out", "x"])
    assert (options.dataset, str(options.out)) == ("host_gemm", "x")
    assert "file of the answer" in parser.format_help()


def test_flags_of_machines_are_fields_of_their_datasets():
    for title, flags in FLAGS.items():
        for dataset in title.partition("(")[2].rstrip(")").split(", "):
            rules = find_rules(dataset)
            names = {name for field in rules.fields for name in (field.name, *field.aliases)}
            for name, *synonyms in flags:
                # a column needs no field
                assert name in names | {"chips"} and set(synonyms) <= names | {"operating-system"}, name
