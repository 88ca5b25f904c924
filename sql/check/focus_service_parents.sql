-- FOCUS 1.4: a service's subcategory is one of those of its category; "Other (…)" names the category itself.
-- table: mart.focus_cost_and_usage
with services as (
    select category, subcategories
    from (
        values
        ('AI and Machine Learning', ',AI Platforms,Bots,Generative AI,Machine Learning,Natural Language Processing,'),
        ('Analytics', ',Analytics Platforms,Business Intelligence,Data Processing,Search,Streaming Analytics,'),
        ('Business Applications', ',Productivity and Collaboration,'),
        ('Compute', ',Containers,End User Computing,Quantum Compute,Serverless Compute,Virtual Machines,'),
        (
            'Databases',
            ',Caching,Data Warehouses,Ledger Databases,NoSQL Databases,Relational Databases'
            || ',Time Series Databases,'
        ),
        (
            'Developer Tools',
            ',Continuous Integration and Deployment,Developer Platforms,Development Environments'
            || ',Quality Assurance,Source Code Management,'
        ),
        ('Multicloud', ',Multicloud Integration,'),
        ('Identity', ',Identity and Access Management,'),
        ('Integration', ',API Management,Messaging,Workflow Orchestration,'),
        ('Internet of Things', ',IoT Analytics,IoT Platforms,'),
        (
            'Management and Governance',
            ',Architecture,Compliance,Cost Management,Data Governance,Disaster Recovery'
            || ',Endpoint Management,Observability,Support,'
        ),
        ('Media', ',Content Creation,Gaming,Media Streaming,Mixed Reality,'),
        ('Migration', ',Data Migration,Resource Migration,'),
        ('Mobile', ''),
        (
            'Networking',
            ',Application Networking,Content Delivery,Network Connectivity,Network Infrastructure'
            || ',Network Routing,Network Security,'
        ),
        ('Security', ',Secret Management,Security Posture Management,Threat Detection and Response,'),
        ('Storage', ',Backup Storage,Block Storage,File Storage,Object Storage,Storage Platforms,'),
        ('Web', ',Application Platforms,'),
        ('Other', '')
    ) as v(category, subcategories)
)
select
    f.date, f.x_charge_id, f.x_cost_part, f."ChargeCategory", f."ServiceName", f."ServiceCategory",
    f."ServiceSubcategory"
from mart.focus_cost_and_usage as f
left join services as s on s.category = f."ServiceCategory"
where
    f.date >= cast($start_at as date) and f.date < cast($end_at as date)
    and f."ServiceSubcategory" <> 'Other (' || f."ServiceCategory" || ')'
    and coalesce(position(',' || f."ServiceSubcategory" || ',' in s.subcategories), 0) = 0
