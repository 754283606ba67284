#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The permission test (t/rights/expect.def) with shipped and generated
# configurations: conf/nginx.conf, xet-setup, docker/entrypoint.sh, and an edge
# in front of the container.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Rights;
use Test::Xet::Rights::Conf;

my %token = (hub => 'closed', api => { '/api' => 'repo', '/cas' => 'repo' });
my %off = (hub => 'off', api => { '/api' => 'store.off',
	'/cas' => 'repo.off' }, owner => 'me', space => 'me');

gate('conf/nginx.conf', sub { $_[0]->shipped_conf()
	=~ s!open_file_cache\w* .*\n!!gr }, %off);
gate('xet-setup', sub { setup($_[0]) }, %token);
gate('the container', sub { container($_[0]) }, %token);
gate('the container, AUTH=off', sub { container($_[0], AUTH => 'off') }, %off);

done_testing();

# Tests one configuration on a separate server.

sub gate {
	my ($name, $conf, %o) = @_;

	return if defined $ENV{GATE_ONLY} && $name !~ /$ENV{GATE_ONLY}/;

	subtest($name => sub {
		my $t = Test::Xet->new(workers => 1, log => 'info');

		prepare($t);
		$t->write_conf($conf->($t));
		$t->run();

		Test::Xet::Rights->new($t, brief => 1, %o)->run();

		$t->done();
	});
}
