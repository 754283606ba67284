#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Tests clients that are too old for t/clients/hub_rows.t and t/hub/data.t
# against this server as their Hub: older releases of huggingface_hub, which
# still had upload_large_folder().  Prints a table; t/README.md has the latest
# table.  "make clients" installs the clients and runs this script; arguments
# name the rows to run ("huggingface_hub").

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Real;
use Test::Xet::Table;

use POSIX qw/ strftime /;

my @wanted = @ARGV;
my $clients = Test::Xet::Real::build() . '/clients';

my $t = Test::Xet->new(Test::Xet::Table::hub(), timeout => 3600);

$t->token_key();
$t->run();

my $table = Test::Xet::Table->new($t);
my @rows;

row('huggingface_hub', $_) for glob("$clients/huggingface_hub*/bin/python");

print strftime("\n%Y-%m-%d\n\n", gmtime()), "| client | rows that pass |\n",
	"| --- | --- |\n", map { "| $_->[0] | $_->[1] |\n" } @rows;
print "\n";

$t->done();

# --------------------------------------------------------------------------

sub row {
	my ($package, $python) = @_;

	return unless -x $python;

	my $version = `$python -c 'import importlib.metadata as m;
print(m.version("$package"))'`;
	chomp($version);

	my $name = "$package $version";

	return if @wanted && !grep { index($name, $_) == 0 } @wanted;

	my @passed = $table->script($name, {}, $python, 'hub_data.py',
		'older', $table->machine());

	push @rows, [ $name, join(', ', @passed) ];
}
