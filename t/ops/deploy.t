#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# docker/kubernetes and docker/compose.yaml: the files are valid, and agree with
# the image in user, port, volume, variables, version and time to stop.  The
# Helm chart creates the same resources as kustomize.  No container has more
# permissions or secrets than it needs.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet::Process qw/ build_dir root run_command slurp spew /;

use File::Path qw/ make_path /;
use File::Temp qw/ tempdir /;
use JSON::PP ();

my $venv = build_dir() . '/kubernetes/bin';
my $work = tempdir('xet-deploy-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my ($kubectl) = grep { -x } map { "$_/kubectl" } split(/:/, $ENV{PATH});

plan(skip_all => 'no kubernetes-validate: sh t/clients/setup.sh')
	unless -x "$venv/python";

sub docker {
	return slurp(root() . "/docker/$_[0]");
}

# Returns the documents of a YAML file.

sub documents {
	my ($file) = @_;

	my ($status, $out) = run_command([ "$venv/python", '-c', << 'END',
import json, sys, yaml
print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))
END
		$file ]);

	BAIL_OUT("$file: $out") if $status;

	return @{ JSON::PP::decode_json($out) };
}

# --------------------------------------------------------------------------
# properties of the image

my $dockerfile = docker('Dockerfile');
my ($uid) = $dockerfile =~ /^USER (\d+):\d+$/m;
my ($port) = $dockerfile =~ /^ENV PORT=(\d+)$/m;
my ($entrypoint) = docker('entrypoint.sh');
my %variables = map { $_ => 1 } $entrypoint =~ /\$\{([A-Z_]+):-/g;
my ($documented) = slurp(root() . '/docs/containers.md')
	=~ /^## In a container\n(.*?)^## /ms;
my %documented = map { $_ => 1 } map { /`([A-Z_]+)`/g }
	map { (split(/\|/, $_))[1] } $documented =~ /^(\|.*)$/mg;

# variables for tests, and a variable of an older image, need no documentation

delete @variables{qw/ DATA RUN SHARE URL /};

is(join(' ', sort keys %variables), join(' ', sort keys %documented),
	'variables: all that there are are documented, and no others');
is_deeply([ grep { $entrypoint !~ /^#   (?:\w+, )*$_\b/m }
	sort keys %variables ], [], 'variables: the head of the script');


# --------------------------------------------------------------------------
# Kubernetes

my @files = grep { !/kustomization|Chart|values/ } glob(root()
	. '/docker/kubernetes/*.yaml');

my $all = "$work/all.yaml";

if ($kubectl) {
	my ($status, $out) = run_command([ $kubectl, 'kustomize',
		root() . '/docker/kubernetes' ]);

	is($status, 0, 'kustomize') or BAIL_OUT($out);
	spew($all, $out);

} else {
	diag('no kubectl: the files as they are');
	spew($all, join("---\n", map { slurp($_) } @files));
}

sub valid {
	my ($file, @version) = @_;

	my ($status, $out) = run_command([ "$venv/kubernetes-validate",
		'--strict', @version, $file ]);

	return $status ? $out : '';
}

is(valid($all), '', 'valid for the newest');
is(valid($all, '-k', '1.28'), '', 'valid for 1.28');

# the validator detects an error

spew("$work/bad.yaml", slurp($all) =~ s/periodSeconds/periodsSeconds/r);
isnt(valid("$work/bad.yaml"), '', 'an unknown field is refused');

my @resources = documents($all);
my %of = map { $_->{kind} => $_ } @resources;

is(join(' ', sort keys %of), 'ConfigMap Ingress Service StatefulSet', 'kinds');
is(scalar(@resources), scalar(@files), 'each file is named');

my $pod = $of{StatefulSet}{spec}{template}{spec};
my ($c) = @{ $pod->{containers} };
my $config = $of{ConfigMap}{data};

is(scalar(@{ $pod->{containers} }), 1, 'one container');

my %env = (%$config, map { $_->{name} => $_ } @{ $c->{env} });

is_deeply([ grep { !$variables{$_} } sort keys %env ], [],
	'variables are those of the image');
ok(!(grep { !defined || ref } values %$config), 'all are texts');
is($config->{AUTH}, 'token', 'with tokens');

my $security = { %{ $pod->{securityContext} }, %{ $c->{securityContext} } };

is($security->{runAsUser}, $uid, 'the user of the image');
is($security->{fsGroup}, $uid, 'whose group has the volume and the secrets');
ok($security->{runAsNonRoot}, 'not root');
ok($security->{readOnlyRootFilesystem}, 'a file system to read');
ok(defined $security->{allowPrivilegeEscalation}
	&& !$security->{allowPrivilegeEscalation}, 'no new privileges');
is_deeply($security->{capabilities}{drop}, [ 'ALL' ], 'no capabilities');
is($security->{seccompProfile}{type}, 'RuntimeDefault', 'system calls');
ok(defined $pod->{automountServiceAccountToken}
	&& !$pod->{automountServiceAccountToken}, 'no token of the cluster');

# Every folder to which the container writes, or which it names, has a volume.

my %mounts = map { $_->{mountPath} => $_ } @{ $c->{volumeMounts} };
my %volumes = map { $_->{name} => $_ } @{ $pod->{volumes} };
my %claims = map { $_->{metadata}{name} => 1 }
	@{ $of{StatefulSet}{spec}{volumeClaimTemplates} };

ok($claims{ $mounts{'/data'}{name} }, '/data is on a volume of its own');
ok($volumes{ $mounts{'/tmp'}{name} }{emptyDir}, '/tmp is thrown away');

my $keys = $volumes{ $mounts{ $config->{KEYS} }{name} }{secret};

ok($keys, 'the keys are a secret');
is($keys->{defaultMode}, 0440, 'for the group, and not for others');
is($env{POSTGRES}{valueFrom}{secretKeyRef}{name}, 'xet-postgres',
	'the database is one');
ok($mounts{ $env{POSTGRES_PASSWORD_FILE}{value} =~ s!/[^/]*$!!r },
	'its password is there');

my $containers = slurp(root() . '/docs/containers.md');

like($containers, qr/create secret generic $_\b/, "$_: how it is made")
	for $keys->{secretName}, $env{POSTGRES}{valueFrom}{secretKeyRef}{name};

# Ports and routes.

my ($http) = @{ $c->{ports} };

is($http->{containerPort}, $port, 'the port of the image');
is($of{Service}{spec}{ports}[0]{targetPort}, $http->{name}, 'of the service');
is($of{Ingress}{spec}{rules}[0]{http}{paths}[0]{backend}{service}{name},
	$of{Service}{metadata}{name}, 'of the ingress');
is_deeply($of{Service}{spec}{selector},
	$of{StatefulSet}{spec}{selector}{matchLabels}, 'whom it leads to')
	if $kubectl;

my $api = docker('../docs/openapi.yaml');

for my $probe (qw/ startup liveness readiness /) {
	my $get = $c->{"${probe}Probe"}{httpGet};
	my ($route) = $get->{path} =~ m!^/api(/.*)$!;

	ok($api =~ m!^  '?/(?:api)?\Q$route\E'?:!m, "$probe: a route");
	is($get->{port}, $http->{name}, "$probe: the port");
}

isnt($c->{livenessProbe}{httpGet}{path}, $c->{readinessProbe}{httpGet}{path},
	'a database that is away restarts nobody');

# The grace period is longer than a stop takes.

my ($sleep) = grep { /^\d+$/ } @{ $c->{lifecycle}{preStop}{exec}{command} };

cmp_ok($pod->{terminationGracePeriodSeconds}, '>',
	$sleep + $config->{GRACE} + 10, 'a stop has its time');

my $annotations = $of{Ingress}{metadata}{annotations};
my $nginx = 'nginx.ingress.kubernetes.io';

is($annotations->{"$nginx/proxy-body-size"}, 0, 'ingress: bodies of any size');
is($annotations->{"$nginx/proxy-$_"}, 'off', "ingress: no $_")
	for qw/ request-buffering buffering /;

# The kustomization example, with the base next to it.

SKIP: {
	skip('no kubectl', 2) unless $kubectl;

	my ($example) = $containers
		=~ /^```yaml\n(apiVersion: kustomize.*?)^```$/ms;
	my $base = 'ngx_http_xet_module/docker/kubernetes';

	make_path("$work/overlay/$base");
	system('cp', '-R', glob(root() . '/docker/kubernetes/*'),
		"$work/overlay/$base/") == 0 or die "cp: $?\n";
	spew("$work/overlay/kustomization.yaml", $example // '');

	my ($status, $out) = run_command([ $kubectl, 'kustomize',
		"$work/overlay" ]);

	is($status, 0, 'the example of docs/containers.md') or diag($out);
	like($out, qr!image: registry\.example\.com/xet-server:0\.9\.0\n!,
		'its image');
	like($out, qr!URL_BASE: https://cas\.example\.org\n!, 'its URL');
}

# --------------------------------------------------------------------------
# Helm: the chart has the resources of kustomize, with the values set

my $chart = root() . '/docker/kubernetes';
my $schema = JSON::PP::decode_json(docker('kubernetes/values.schema.json'));

is(join(' ', @{ $schema->{properties}{config}{propertyNames}{enum} }),
	join(' ', sort grep { !/^POSTGRES/ } keys %variables),
	'chart: config has all variables, except those of the database');

SKIP: {
	my ($helm) = grep { -x } map { "$_/helm" } split(/:/, $ENV{PATH});

	skip('no helm', 19) unless $helm;

	my $set = sub {
		return run_command([ $helm, 'template', 'box', $chart,
			map { ('--set', $_) } @_ ]);
	};

	my ($status, $out) = run_command([ $helm, 'lint', '--strict',
		$chart ]);

	is($status, 0, 'helm lint') or diag($out);

	($status, $out) = run_command([ $helm, 'template', 'xet', $chart ]);
	is($status, 0, 'helm template') or diag($out);
	spew("$work/helm.yaml", $out);
	is(valid("$work/helm.yaml"), '', 'chart: valid for the newest');
	is(valid("$work/helm.yaml", '-k', '1.28'), '', 'chart: valid for 1.28');

	my %made = map { $_->{kind} => $_ } documents("$work/helm.yaml");
	my $template = $made{StatefulSet}{spec}{template};

	is_deeply($template->{metadata}{labels},
		{ %{ $made{Service}{spec}{selector} },
		%{ $template->{metadata}{labels} } },
		'chart: the service selects the pods');

	# labels differ; the default values are those of kustomize

	delete $_->{metadata}{labels} for values %made, values %of;
	delete $_->{StatefulSet}{spec}{template}{metadata} for \%made, \%of;
	delete $_->{StatefulSet}{spec}{volumeClaimTemplates}[0]{metadata}
		{labels} for \%made, \%of;
	delete $_->{StatefulSet}{spec}{selector} for \%made, \%of;
	delete $_->{Service}{spec}{selector} for \%made, \%of;
	delete $made{StatefulSet}{spec}{template}{spec}{containers}[0]
		{imagePullPolicy};

	is_deeply(\%made, \%of, 'chart: the resources of kustomize');

	($status, $out) = $set->('host=cas.example.org', 'config.PUBLIC=on',
		'config.OWNERS=alice=team', 'image.repository=r/xet',
		'storage.className=fast', 'secrets.keys=k');
	is($status, 0, 'chart: values') or diag($out);

	for my $line ('name: box', 'PUBLIC: "on"', 'OWNERS: alice=team',
		'URL_BASE: https://cas.example.org', '- host: cas.example.org',
		'storageClassName: fast', 'secretName: k')
	{
		like($out, qr/^ *\Q$line\E$/m, "chart: $line");
	}

	like($out, qr!image: r/xet:\d!, 'chart: the image');
	unlike($set->('ingress.enabled=false'), qr/kind: Ingress/,
		'chart: no ingress');

	for my $bad ('hots=x', 'config.PUBLC=on', 'replicas=some') {
		isnt(($set->($bad))[0], 0, "chart: $bad is refused");
	}
}

# The version is that of the sources.

my ($version) = slurp(root() . '/src/core/base/xet_base.h')
	=~ /^#define XET_VERSION\s+"(.*)"$/m;

for (
	[ 'Dockerfile', qr/image\.version=(\S+)/ ],
	[ 'compose.yaml', qr/image: xet-server:(\S+)/ ],
	[ 'kubernetes/kustomization.yaml', qr/newTag: (\S+)/ ],
	[ 'kubernetes/Chart.yaml', qr/^version: (\S+)/m ],
	[ 'kubernetes/Chart.yaml', qr/^appVersion: (\S+)/m ])
{
	my ($file, $re) = @$_;

	is((docker($file) =~ $re)[0], $version, "the version in $file");
}

# --------------------------------------------------------------------------
# compose

my ($compose) = documents(root() . '/docker/compose.yaml');
my %services = %{ $compose->{services} };

is(join(' ', sort keys %services), 'edge postgres server', 'services');

for my $name (qw/ edge server /) {
	my $s = $services{$name};

	is_deeply([ grep { !$variables{$_} } sort keys
		%{ $s->{environment} } ], [],
		"$name: variables are those of the image");
	ok($s->{read_only}, "$name: to read");
	is_deeply($s->{tmpfs}, [ '/tmp' ], "$name: /tmp");
	is_deeply($s->{cap_drop}, [ 'ALL' ], "$name: no capabilities");
	is_deeply($s->{security_opt}, [ 'no-new-privileges:true' ],
		"$name: no new privileges");
	ok((grep { m!:/data$! } @{ $s->{volumes} }), "$name: /data");
	is($s->{stop_grace_period}, '1m', "$name: a stop has its time");
	is($s->{image}, $services{server}{image}, "$name: the image");
}

is($services{server}{build}{target}, 'server', 'without PostgreSQL');
like($dockerfile, qr/ AS $services{server}{build}{target}$/m,
	'which is there');
ok(!exists $services{server}{environment}{AUTH}, 'with tokens');
is($services{edge}{environment}{EDGE}, "server:$port", 'its origin');
is_deeply([ grep { $services{$_}{ports} } sort keys %services ], [ 'edge' ],
	'nobody else is published');
like($services{edge}{ports}[0], qr/^\$\{LISTEN:-127\.0\.0\.1:\d+\}:$port$/,
	'to this machine by default');

# Services use only secrets that secrets.sh creates, and only those that they
# need.

is_deeply($services{edge}{secrets}, [ 'url.key' ], 'the edge has one');

my %used = map { $_ => 1 } map { @{ $_->{secrets} || [] } } values %services;

is(join(' ', sort keys %used), join(' ', sort keys %{ $compose->{secrets} }),
	'all are used');

my ($status, $out) = run_command([ 'sh', root() . '/docker/secrets.sh',
	"$work/secrets" ]);

is($status, 0, 'secrets.sh') or diag($out);
is(join(' ', sort map { s!.*/!!r } glob("$work/secrets/*")),
	join(' ', sort map { $_->{file} =~ s!^secrets/!!r }
	values %{ $compose->{secrets} }), 'secrets.sh makes all of them');
is((stat("$work/secrets"))[2] & 0777, 0700, 'the folder is closed');

my $before = join('', map { slurp($_) } sort glob("$work/secrets/*"));

run_command([ 'sh', root() . '/docker/secrets.sh', "$work/secrets" ]);
is(join('', map { slurp($_) } sort glob("$work/secrets/*")), $before,
	'existing files are kept');

like(docker('Dockerfile.dockerignore'), qr!^docker/secrets$!m,
	'none comes into an image');

# The compose tool itself, if it is installed; this test needs no engine.

SKIP: {
	my ($tool) = grep { (run_command([ @$_, 'version' ]))[0] == 0 }
		[ qw/ docker compose / ], [ 'docker-compose' ];

	skip('no docker compose', 1) unless $tool;

	make_path("$work/compose/docker/secrets");
	spew("$work/compose/docker/compose.yaml", docker('compose.yaml'));
	spew("$work/compose/docker/secrets/$_", '')
		for keys %{ $compose->{secrets} };

	my ($status, $out) = run_command([ @$tool, '-p', 'xet', '-f',
		"$work/compose/docker/compose.yaml", 'config' ]);

	is($status, 0, "@$tool config") or diag($out);
}

done_testing();
